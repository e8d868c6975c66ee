# Composite operations with parameters: three kinds of users, each with files of its own.
set $dir=/tmp
set $nfiles=700
set $meandirwidth=20
set $filesize=128k
set $nthreads=10
set $meaniosize=16k
set $runtime=60

define fileset name=files1,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80,paralloc
define fileset name=files2,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80,paralloc
define fileset name=files3,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80,paralloc

define flowop name=transfer,$files
{
  flowop openfile name=open-from,filesetname=$files,fd=1
  flowop openfile name=open-to,filesetname=$files,fd=2
  flowop readwholefile name=read-from,fd=1
  flowop writewholefile name=write-to,fd=2,srcfd=1
  flowop closefile name=close-from,fd=1
  flowop closefile name=close-to,fd=2
}
define flowop name=work,$files,$times=1
{
  flowop createfile name=create-new,filesetname=$files,fd=1
  flowop appendfilerand name=append-new,iosize=$meaniosize,fd=1
  flowop closefile name=close-new,fd=1
  flowop transfer name=transfers,iters=$times,$files=$files
  flowop deletefile name=delete-one,filesetname=$files
  flowop statfile name=stat-one,filesetname=$files
}
define process name=users
{
  thread name=user1,memsize=10m,instances=$nthreads
  {
    flowop work name=work1,$times=5,$files=files1
  }
  thread name=user2,memsize=10m,instances=$nthreads
  {
    flowop work name=work2,$times=4,$files=files2
  }
  thread name=user3,memsize=10m,instances=$nthreads
  {
    flowop work name=work3,$times=3,$files=files3
  }
}
run $runtime
