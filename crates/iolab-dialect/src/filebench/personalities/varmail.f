# Mail server, one file per message: deliveries and re-reads end with fsync.
set $dir=/tmp
set $nfiles=1000
set $meandirwidth=1000000
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=16
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=spool,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=mailserver
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete-mail,filesetname=spool
    flowop createfile name=create-mail,filesetname=spool,fd=1
    flowop appendfilerand name=write-mail,iosize=$meanappendsize,fd=1
    flowop fsync name=sync-mail,fd=1
    flowop closefile name=close-mail,fd=1
    flowop openfile name=open-reply,filesetname=spool,fd=1
    flowop readwholefile name=read-reply,fd=1,iosize=$iosize
    flowop appendfilerand name=append-reply,iosize=$meanappendsize,fd=1
    flowop fsync name=sync-reply,fd=1
    flowop closefile name=close-reply,fd=1
    flowop openfile name=open-read,filesetname=spool,fd=1
    flowop readwholefile name=read-mail,fd=1,iosize=$iosize
    flowop closefile name=close-read,fd=1
  }
}
run $runtime
