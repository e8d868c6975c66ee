# File server: files are written, extended, read, removed and looked at.
set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $filesize=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $nthreads=50
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=served,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=fileserver
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop createfile name=create-new,filesetname=served,fd=1
    flowop writewholefile name=write-new,srcfd=1,fd=1,iosize=$iosize
    flowop closefile name=close-new,fd=1
    flowop openfile name=open-append,filesetname=served,fd=1
    flowop appendfilerand name=append-some,iosize=$meanappendsize,fd=1
    flowop closefile name=close-append,fd=1
    flowop openfile name=open-read,filesetname=served,fd=1
    flowop readwholefile name=read-all,fd=1,iosize=$iosize
    flowop closefile name=close-read,fd=1
    flowop deletefile name=delete-one,filesetname=served
    flowop statfile name=stat-one,filesetname=served
  }
}
run $runtime
