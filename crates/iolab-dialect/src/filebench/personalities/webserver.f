# Web server: ten documents are read, then a line goes to the log.
set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=documents,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,readonly
define fileset name=accesslog,path=$dir,size=$filesize,entries=1,dirwidth=$meandirwidth,prealloc

define process name=webserver
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop openfile name=open-01,filesetname=documents,fd=1
    flowop readwholefile name=read-01,fd=1,iosize=$iosize
    flowop closefile name=close-01,fd=1
    flowop openfile name=open-02,filesetname=documents,fd=1
    flowop readwholefile name=read-02,fd=1,iosize=$iosize
    flowop closefile name=close-02,fd=1
    flowop openfile name=open-03,filesetname=documents,fd=1
    flowop readwholefile name=read-03,fd=1,iosize=$iosize
    flowop closefile name=close-03,fd=1
    flowop openfile name=open-04,filesetname=documents,fd=1
    flowop readwholefile name=read-04,fd=1,iosize=$iosize
    flowop closefile name=close-04,fd=1
    flowop openfile name=open-05,filesetname=documents,fd=1
    flowop readwholefile name=read-05,fd=1,iosize=$iosize
    flowop closefile name=close-05,fd=1
    flowop openfile name=open-06,filesetname=documents,fd=1
    flowop readwholefile name=read-06,fd=1,iosize=$iosize
    flowop closefile name=close-06,fd=1
    flowop openfile name=open-07,filesetname=documents,fd=1
    flowop readwholefile name=read-07,fd=1,iosize=$iosize
    flowop closefile name=close-07,fd=1
    flowop openfile name=open-08,filesetname=documents,fd=1
    flowop readwholefile name=read-08,fd=1,iosize=$iosize
    flowop closefile name=close-08,fd=1
    flowop openfile name=open-09,filesetname=documents,fd=1
    flowop readwholefile name=read-09,fd=1,iosize=$iosize
    flowop closefile name=close-09,fd=1
    flowop openfile name=open-10,filesetname=documents,fd=1
    flowop readwholefile name=read-10,fd=1,iosize=$iosize
    flowop closefile name=close-10,fd=1
    flowop appendfilerand name=append-log,filesetname=accesslog,iosize=$meanappendsize,fd=2
  }
}
run $runtime
